package mockdrupal

import "testing"

// TestJournalsMemoryIsBounded looks from inside, so that no gigabytes need to travel.
func TestJournalsMemoryIsBounded(t *testing.T) {
	j := newJournal(0)
	large := make([]byte, maxJournalBytes/4)
	for range 6 {
		e := &Entry{}
		j.begin(e)
		j.body(e, large)
	}
	kept := j.Entries(0)
	if len(kept) != 4 || j.Dropped() != 2 || kept[0].Seq != 3 {
		t.Errorf("of six large requests %d are kept, from number %d, and %d dropped; want 4, from 3, and 2", len(kept), kept[0].Seq, j.Dropped())
	}
	if last := kept[3]; len(last.Body) != MaxBody || last.BodyBytes != int64(len(large)) {
		t.Errorf("the last entry shows %d of %d bytes", len(last.Body), last.BodyBytes)
	}
	j.Clear()
	late := &Entry{Seq: 1}
	if j.body(late, large); j.bytes != 0 {
		t.Errorf("a request that was cleared while under way still weighs %d bytes", j.bytes)
	}
}
