package suites

// defaultCases is how many made-up cases a check tries at most.
const defaultCases = 400
