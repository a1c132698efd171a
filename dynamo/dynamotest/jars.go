package dynamotest

import (
	"embed"

	"github.com/samekey/samekey/internal/servers"
)

// localFiles holds what is needed to get and run DynamoDB Local, but no jars (see the
// package documentation, "Licence").
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
		Ready:       canKeepLocal, // called before a download, because the jars are of no use if the database can't be kept on loopback
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
