package format

import "github.com/bridgecheck/bridgecheck/reports"

func jsonVerdicts(data []byte) (map[string]reports.Verdict, error) {
	r, err := reports.Parse(data)
	if err != nil {
		return nil, err
	}
	verdicts := map[string]reports.Verdict{}
	for _, result := range r.Results {
		verdicts[result.ID] = result.Verdict
	}
	return verdicts, nil
}
