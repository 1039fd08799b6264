//go:build !linux

package machine

import "math"

// Memory is how much memory this process is given, in bytes; only Linux has control groups.
func Memory() uint64 { return math.MaxUint64 }

func reserved() uint64 { return 0 }

func threads() uint64 { return math.MaxUint64 }

func ports() uint64 { return math.MaxUint64 }

func free(string) uint64 { return math.MaxUint64 }
