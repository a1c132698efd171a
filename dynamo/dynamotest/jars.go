package dynamotest

import (
	"embed"

	"github.com/samekey/samekey/internal/servers"
)

// localFiles holds only the list of jars and checksums, no jars (see the package documentation,
// "Licence").
//
//go:embed local
var localFiles embed.FS

// minJava is the lowest Java version that can load DynamoDB Local's class files.
const minJava = 17

// localVersion is the version of DynamoDB Local, as pinned in local/.
const localVersion = "3.3.1"

// source describes where [Find] looks for a database.
func source() servers.Source {
	return servers.Source{
		Kind:        "a DynamoDB",
		Endpoint:    envEndpoint,
		AllowRemote: envAllowRemote,
		Cache:       envCache,
		Shared:      envShared,
		Unavailable: ErrUnavailable,
		Java:        minJava,
		Bundle:      ddbLocal(),
		Start:       startLocal,
		Ready:       canKeepLocal, // checked before any download: a database that can't be kept on loopback isn't started
		Otherwise:   tryCompose,
	}
}

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
