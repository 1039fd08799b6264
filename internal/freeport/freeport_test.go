package freeport

import (
	"net"
	"strconv"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestAddress(t *testing.T) {
	address, release, err := Address()
	must.Do(t, err)
	l := must.Get(net.Listen("tcp", address))(t)
	defer l.Close()
	if port := l.Addr().(*net.TCPAddr).Port; port < lowest || port >= beyond {
		t.Errorf("the port is %d", port)
	}
	_, port, err := net.SplitHostPort(address)
	must.Do(t, err)
	number := must.Get(strconv.Atoi(port))(t)
	if other, err := net.Listen("tcp", at(number+held)); err == nil {
		other.Close()
		t.Errorf("%s is not held", address)
	}
	release()
	other, err := net.Listen("tcp", at(number+held))
	must.Assert(t, err == nil, "%s is not released: %v", address, err)
	other.Close()
}

func TestNoAddressIsGivenTwice(t *testing.T) {
	given := map[string]bool{}
	for range 500 {
		address, release, err := Address()
		must.Do(t, err)
		defer release()
		must.Assert(t, !given[address], "%s was given twice", address)
		given[address] = true
	}
}
