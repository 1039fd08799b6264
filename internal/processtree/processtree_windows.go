package processtree

import (
	"fmt"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// systemTree holds the job of the program. All that a process of a job starts belongs to the job.
type systemTree struct {
	mu  sync.Mutex
	job windows.Handle // 0: closed
}

// withJob calls do unless the job is closed.
func (t *systemTree) withJob(do func(job windows.Handle)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.job != 0 {
		do(t.job)
	}
}

// start starts the program suspended, so that it is in its job before it can start anything.
func (t *Tree) start() (err error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return fmt.Errorf("create a job: %w", err)
	}
	defer func() {
		if err != nil {
			_ = windows.CloseHandle(job)
		}
	}()
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
		LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE}}
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		return fmt.Errorf("set the limits of a job: %w", err)
	}
	t.cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP}
	if err := t.cmd.Start(); err != nil {
		return err
	}
	pid := uint32(t.cmd.Process.Pid)
	if err = assign(job, pid); err == nil {
		err = resume(pid)
	}
	if err != nil {
		_ = t.cmd.Process.Kill()
		_ = t.cmd.Wait()
		return err
	}
	t.job = job
	return nil
}

func assign(job windows.Handle, pid uint32) error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, pid)
	if err != nil {
		return fmt.Errorf("open the process: %w", err)
	}
	defer windows.CloseHandle(process)
	if err := windows.AssignProcessToJobObject(job, process); err != nil {
		return fmt.Errorf("put the process into a job: %w", err)
	}
	return nil
}

// resume lets the one thread of a suspended process run.
func resume(pid uint32) error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return fmt.Errorf("list the threads: %w", err)
	}
	defer windows.CloseHandle(snapshot)
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(snapshot, &entry); err == nil; err = windows.Thread32Next(snapshot, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return fmt.Errorf("open the thread: %w", err)
		}
		defer windows.CloseHandle(thread)
		if _, err := windows.ResumeThread(thread); err != nil {
			return fmt.Errorf("resume the process: %w", err)
		}
		return nil
	}
	return fmt.Errorf("the process has no thread: %w", err)
}

// accounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type accounting struct {
	totalUserTime, totalKernelTime, periodUserTime, periodKernelTime int64
	pageFaults, total, active, terminated                            uint32
}

// Alive reports whether any process of the tree runs.
func (t *Tree) Alive() (alive bool) {
	t.withJob(func(job windows.Handle) {
		var a accounting
		err := windows.QueryInformationJobObject(job, windows.JobObjectBasicAccountingInformation,
			uintptr(unsafe.Pointer(&a)), uint32(unsafe.Sizeof(a)), nil)
		alive = err == nil && a.active > 0
	})
	return alive
}

// interrupt sends Ctrl-Break to the process group. A program without a console receives nothing.
func (t *Tree) interrupt() {
	_ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(t.cmd.Process.Pid))
}

// Kill ends every process of the tree at once.
func (t *Tree) Kill() { t.withJob(func(job windows.Handle) { _ = windows.TerminateJobObject(job, 1) }) }

func (t *systemTree) release() {
	t.withJob(func(job windows.Handle) {
		_ = windows.CloseHandle(job)
		t.job = 0
	})
}
