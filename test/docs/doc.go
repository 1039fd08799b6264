// Package docs tests README.md and docs: their commands end with the exit codes that they promise, their example output is
// what the commands print, what they say of programs is true (testdata/statements), their configurations are valid, and their links
// lead somewhere. It has no code besides tests.
package docs
