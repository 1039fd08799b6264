package testbed

import "testing"

func TestUnknownNamesAreErrors(t *testing.T) {
	for _, o := range []Options{{Profile: "none"}, {Fixture: "none"}} {
		if bed, err := Start(o); err == nil {
			bed.Close()
			t.Errorf("%+v starts", o)
		}
	}
}
