package dynamotest

import (
	"context"
	"errors"
	"fmt"

	"github.com/samekey/samekey/internal/local/servers"
)

// minJava is what DynamoDB Local's class files ask for.
const minJava = 17

// tryJava runs DynamoDB Local on this machine's Java, from jars in the cache
// or, where there are none, from jars that Maven gets.
func tryJava(ctx context.Context, s *servers.Search) (*DB, error) {
	java, err := servers.FindJava(ctx, minJava)
	if err != nil {
		s.Miss(fmt.Sprintf("Java %d or newer", minJava), err)
		return nil, nil
	}
	root, err := servers.CacheRoot(envCache)
	if err != nil {
		return nil, err
	}
	// Before any download: what can't be kept on loopback isn't started.
	if err := canKeepLocal(); err != nil {
		s.Miss("Java", err)
		return nil, nil
	}
	b := ddbLocal()
	dir, from := b.Dir(root), "Java with cached jars"
	if err := b.Cached(dir); err != nil {
		s.Miss(from, err)
		from = "Java with Maven"
		switch err := b.Install(ctx, root); {
		case errors.Is(err, servers.ErrChecksum):
			return nil, err
		case err != nil:
			s.Miss(from, err)
			return nil, nil
		}
	}
	db, err := startLocal(ctx, java, dir)
	if err != nil {
		s.Miss(from, err)
		return nil, nil
	}
	return db, nil
}
