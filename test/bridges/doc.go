// Package bridges tests bridges in other languages. Three, one of them the starter in PHP, are written from the contract
// alone: each is conformant, and a clause fails for each fault that is put into it; bridges_test.go lists them. The starters of
// `bridgecheck init` are conformant as they are written, and pass their own tests. It has no code besides tests.
package bridges
