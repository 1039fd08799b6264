package main

import (
	"os"
	"runtime"
	"strings"
)

// inherited are the variables of our own environment that every bridge of --exec receives. All others may hold secrets
// that are not its business.
var inherited = []string{"PATH", "HOME", "LANG", "TMPDIR"}

// inheritedOnWindows are what programs there cannot run without.
var inheritedOnWindows = []string{"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA"}

// bridgeEnvironment is the whole environment of a bridge that we start: what every program needs, the variables that the
// user named, and ours, which come last and so override the others.
func bridgeEnvironment(named []string, ours ...string) []string {
	names := append([]string{}, inherited...)
	if runtime.GOOS == "windows" {
		names = append(names, inheritedOnWindows...)
	}
	var env []string
	for _, name := range append(names, named...) {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, ours...)
}

// checkEnvironment refuses what is not the name of a variable that is set; names come from --env, or from the configuration.
func checkEnvironment(names []string) error {
	for _, name := range names {
		if before, _, ok := strings.Cut(name, "="); ok {
			return usagef("--env takes a name without a value, because others can read a command line: set %s in the environment and give --env %s", before, before)
		}
		if _, ok := os.LookupEnv(name); !ok {
			return usagef("--env %s, or env in the configuration: the environment variable %s is not set: set it, if only to nothing, or leave it out", name, name)
		}
	}
	return nil
}
