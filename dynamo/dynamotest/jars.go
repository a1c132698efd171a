package dynamotest

import (
	"embed"

	"github.com/samekey/samekey/internal/local/servers"
)

// localFiles are the recipe only: no jar may be among them (see the package
// documentation, "Licence").
//
//go:embed local
var localFiles embed.FS

// localVersion is the version of DynamoDB Local, as pinned in local/.
const localVersion = "3.3.1"

func ddbLocal() servers.Bundle {
	return servers.Bundle{
		Name:  "dynamodb-local-" + localVersion,
		POM:   localFile("pom.xml"),
		Sums:  localFile("SHA256SUMS"),
		Files: map[string][]byte{"log4j2.xml": localFile("log4j2.xml")},
	}
}

func localFile(name string) []byte {
	b, err := localFiles.ReadFile("local/" + name)
	if err != nil {
		panic("dynamotest: " + err.Error()) //nolint:forbidigo // it is embedded
	}
	return b
}
