//go:build !linux

package main

import "os"

// clockFile returns a file and its path.
func clockFile() (*os.File, string, error) {
	file, err := os.CreateTemp("", "bridgecheck-clock-")
	if err != nil {
		return nil, "", err
	}
	return file, file.Name(), nil
}
