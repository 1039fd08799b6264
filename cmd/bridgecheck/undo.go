package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/internal/wholefile"
)

// undoName is the file in the report directory that says what a run has to undo, for as long as that is so.
const undoName = ".undo.json"

// undoTime is how long undoing may take.
const undoTime = 15 * time.Second

// remember notes the sessions that the run has opened, so that they can be ended after a crash, too. Their cookies are
// secrets: nobody else may read the file, whatever stood in its place before.
func remember(dir string, sessions []settings.Session) error {
	if len(sessions) == 0 {
		return nil
	}
	data, err := json.Marshal(sessions)
	if err != nil {
		return fmt.Errorf("encode what is to be undone: %w", err)
	}
	if err := wholefile.Write(filepath.Join(dir, undoName), data, 0o600); err != nil {
		return unwritable(dir, err)
	}
	return nil
}

// undo ends the sessions and forgets them; where it fails, --cleanup tries again. It works on after an interrupt.
func undo(ctx context.Context, file *settings.File, dir string, sessions []settings.Session) error {
	if len(sessions) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	if err := file.End(ctx, sessions...); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, undoName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forget what was undone: %w", err)
	}
	return nil
}

// cleanUp undoes what an earlier run into the same report directory left behind.
func (f *runFlags) cleanUp(cmd *cobra.Command) error {
	file := &settings.File{}
	if f.Config != "" {
		var err error
		if file, err = settings.Load(f.Config); err != nil {
			return usageError(err)
		}
	}
	dir := f.ReportDir
	if !cmd.Flags().Changed("report-dir") {
		dir = cmp.Or(file.ReportDir, dir)
	}
	data, err := os.ReadFile(filepath.Join(dir, undoName))
	if errors.Is(err, os.ErrNotExist) {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "nothing to undo in %s\n", dir)
		return err
	}
	if err != nil {
		return usagef("%s cannot be read: %s", filepath.Join(dir, undoName), reason(err))
	}
	var sessions []settings.Session
	if err := json.Unmarshal(data, &sessions); err != nil {
		return usagef("%s is not what a run wrote: remove it, and end the sessions at the site", filepath.Join(dir, undoName))
	}
	if err := undo(cmd.Context(), file, dir, sessions); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "sessions ended: %d\n", len(sessions))
	return err
}
