package mockdrupal_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// TestFaultsOnThePortAreListedAndEnd: they are faults as all others, by number and all at once.
func TestFaultsOnThePortAreListedAndEnd(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{})
	accepts := func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
	for name, end := range map[string]func(int64){
		"by its number": func(id int64) { s.Disarm(id) },
		"with all":      func(int64) { s.DisarmAll() },
		"by its time":   func(int64) { waitUntil(t, accepts, "the port opens") },
	} {
		during := time.Hour
		if name == "by its time" {
			during = 50 * time.Millisecond
		}
		id, err := s.ArmNumbered(mockdrupal.Fault{Kind: fault.Refuse, Delay: during})
		if err != nil {
			t.Fatal(err)
		}
		if list := s.Faults(); during == time.Hour && (len(list) != 1 || list[0].ID != id || accepts()) {
			t.Errorf("%s: armed are %+v, and the port accepts connections: %v", name, list, accepts())
		}
		end(id)
		waitUntil(t, func() bool { return len(s.Faults()) == 0 && accepts() }, "the fault ends "+name)
	}
	if _, err := s.Arm(mockdrupal.Fault{Kind: fault.Refuse, Delay: time.Second, Route: route.JSONRPC}); err == nil {
		t.Error("a fault on the port was armed for one route: it would act on all")
	}
}

func TestFaultsSayWhatTheMachineLacks(t *testing.T) {
	bare, err := mockdrupal.New(smallSite(), mockdrupal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{fault.Refuse, fault.Deaf} {
		if _, err := bare.Arm(mockdrupal.Fault{Kind: kind, Delay: time.Second}); err == nil || !strings.Contains(err.Error(), "Listen") || len(bare.Faults()) > 0 {
			t.Errorf("%s on a handler without a port: %v, armed %v", kind, err, bare.Faults())
		}
	}
}
