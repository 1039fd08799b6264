//go:build !unix

package machine

import "math"

// OpenFiles is how many files this process may open; nothing limits them here.
func OpenFiles() uint64 { return math.MaxUint64 }

func processorTime() uint64 { return math.MaxUint64 }

func addressSpace() uint64 { return math.MaxUint64 }
