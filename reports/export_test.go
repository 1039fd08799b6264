package reports

var (
	CutBody = cutBody
	Gravity = gravity
)

// BoundedSmall is r within bounds that keep a fuzz test fast.
func BoundedSmall(r *Report) *Report {
	return bounded(r, limits{text: 1 << 10, exchanges: 4, body: 1 << 10, evidence: 8 << 10})
}
