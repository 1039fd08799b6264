package main

import "os"

// memory is unknown: Windows does not tell it of a process that has ended.
func memory(*os.ProcessState) int64 { return 0 }
