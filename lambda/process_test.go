package lambda_test

import "github.com/samekey/samekey/idem"

// process is the store of another process, or of another version, which has handlers of
// its own: a memory store belongs to one process.
type process struct{ *idem.MemoryStore }

func (process) AddUnnamed(string) int { return 1 }

// elsewhere is a watched store, as another process has it.
type elsewhere struct{ *watched }

func (elsewhere) AddUnnamed(string) int { return 1 }
