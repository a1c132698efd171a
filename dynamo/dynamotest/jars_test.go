package dynamotest

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/servers"
	"github.com/samekey/samekey/internal/servers/serverstest"
)

func TestAFalseJarFailsTheSearch(t *testing.T) {
	if err := canKeepLocal(); err != nil {
		t.Skip(err)
	}
	path := os.Getenv("PATH")
	bare(t, map[string]string{"java": newJava, "cc": ""})
	t.Setenv("PATH", commandPath()+string(os.PathListSeparator)+path)
	// It puts a file where the jars belong.
	mvn := serverstest.Commands(t, map[string]string{"mvn": `for arg; do case "$arg" in -DoutputDirectory=*) mkdir -p "${arg#*=}" && echo x >"${arg#*=}/DynamoDBLocal-3.3.1.jar" ;; esac; done`})
	t.Setenv("PATH", mvn+string(os.PathListSeparator)+os.Getenv("PATH"))
	if _, err := Find(t.Context()); !errors.Is(err, servers.ErrChecksum) || errors.Is(err, ErrUnavailable) {
		t.Errorf("Find: got %v, want ErrChecksum and not ErrUnavailable", err)
	}
}

func TestEmbeddedFilesNameOneVersion(t *testing.T) {
	t.Parallel()
	b := ddbLocal()
	sums := string(b.Sums)
	if n := strings.Count(sums, "\n"); n != 92 || !strings.Contains(sums, "  DynamoDBLocal-"+localVersion+".jar\n") {
		t.Errorf("SHA256SUMS: %d files, want 92 and version %s", n, localVersion)
	}
	if want := "<ddb.version>" + localVersion + "</ddb.version>"; !bytes.Contains(b.POM, []byte(want)) {
		t.Errorf("pom.xml lacks %s", want)
	}
	if want := "image: amazon/dynamodb-local:" + localVersion + "@sha256:"; !bytes.Contains(localFile("compose.yaml"), []byte(want)) {
		t.Errorf("compose.yaml lacks %s", want)
	}
}

// The licence forbids to pass the software on.
func TestNothingOfDynamoDBLocalIsEmbedded(t *testing.T) {
	t.Parallel()
	want := []string{"local/SHA256SUMS", "local/bindlo.c", "local/compose.yaml", "local/log4j2.xml", "local/pom.xml"}
	got, err := fs.Glob(localFiles, "local/*")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("embedded files (-want +got):\n%s", diff)
	}
}
