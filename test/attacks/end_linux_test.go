package attacks

import (
	"os/exec"
	"syscall"
)

// endWithTests makes the system kill a process when the tests are killed.
func endWithTests(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
