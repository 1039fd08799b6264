// Package bridges tests bridges in other languages, written from the contract alone: each is conformant, and a clause fails
// for each fault that is put into it. A directory here is a bridge; bridges_test.go lists them. It has no code besides tests.
package bridges
