package recipes

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
)

// Thumbnail is the job that makes a small picture of an upload.
type Thumbnail struct {
	Bucket string `json:"bucket"`
	Key    string `json:"key"`
}

// OnUpload enters an uploaded file in a table and stages its thumbnail. S3 may notify
// twice, and the second notification does nothing.
func OnUpload(ctx context.Context, r events.S3EventRecord) error {
	o := r.S3.Object
	_, err := idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (any, error) {
		tx.Write(dynamo.Put("files", map[string]any{"id": r.S3.Bucket.Name + "/" + o.URLDecodedKey, "etag": o.ETag, "size": o.Size}))
		tx.Stage(idem.NewJob("thumbnail", Thumbnail{r.S3.Bucket.Name, o.URLDecodedKey}))
		return nil, nil
	})
	return err
}
