package client

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// eventStream is the media type of server-sent events.
const eventStream = "text/event-stream"

// What is read of one stream: a server may send what it likes before the response.
const (
	maxMessages = 10_000
	maxAsked    = 100 // requests of the server that get a response
)

// stream is what arrived whole of an event stream.
type stream struct {
	messages []map[string]any
	lastID   string        // of the last event that has one; "": none has, or the last id is empty
	pause    time.Duration // before the stream is resumed
}

// readStream reads an event stream as browsers do. An event without a JSON object, as a comment or the first event of a stream
// that can be resumed, is no message.
func readStream(text []byte) stream {
	s := stream{pause: usualPause}
	var data []byte
	id := ""
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	for line := range bytes.Lines(bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))) {
		line, ended := bytes.CutSuffix(line, []byte("\n"))
		if !ended {
			break
		}
		if len(line) == 0 {
			s.lastID = id
			if message := messageOf(data); message != nil {
				s.messages = append(s.messages, message)
			}
			if data = nil; len(s.messages) == maxMessages {
				break
			}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			data = append(append(data, value...), '\n')
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				id = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				s.pause = time.Duration(ms) * time.Millisecond
			}
		}
	}
	return s
}

// eventEnds is where the last event ends that arrived whole, at from or later.
func eventEnds(text []byte, from int) int {
	for _, blank := range [][]byte{[]byte("\n\n"), []byte("\r\r"), []byte("\n\r")} {
		if at := bytes.LastIndex(text, blank); at+len(blank) > from && at >= 0 {
			from = at + len(blank)
		}
	}
	return from
}

func messageOf(data []byte) map[string]any {
	if len(data) == 0 {
		return nil
	}
	v, err := exact.Parse(data)
	if err != nil {
		return nil
	}
	message, _ := v.(map[string]any)
	return message
}

// Events are the JSON-RPC messages of an event stream that arrived whole.
func Events(stream []byte) []map[string]any { return readStream(stream).messages }

// responseAmong finds the response to an id, or the first one.
func responseAmong(messages []map[string]any, id any) map[string]any {
	for _, message := range messages {
		_, isResult := message["result"]
		_, isError := message["error"]
		if (isResult || isError) && (id == nil || fmt.Sprint(message["id"]) == fmt.Sprint(id)) {
			return message
		}
	}
	return nil
}
