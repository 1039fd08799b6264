// Package docs tests README.md and docs: their commands end with the exit codes that they promise, their example output is
// what the commands print, their configurations are valid, and their links lead somewhere. It has no code besides tests.
package docs
