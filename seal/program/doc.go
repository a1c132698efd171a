// Package program gets data keys from another program. samekey --keys-from runs a program that
// has the right to use the keys, and writes a question for each data key to the program's
// standard input. The program calls [Serve] with a provider:
//
//	func main() {
//		if err := program.Serve(context.Background(), provider, os.Stdin, os.Stdout); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// kms/cmd/samekey-keys is such a program, for AWS KMS. samekey runs the program once for each
// data key, with the rights of samekey's user. Plain data keys go through a pipe between the two
// processes, never through a file.
package program
