package freeport

import (
	"net"
	"testing"
)

func TestAddress(t *testing.T) {
	address, err := Address()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if port := l.Addr().(*net.TCPAddr).Port; port < lowest || port >= beyond {
		t.Errorf("the port is %d", port)
	}
}
