// Package program gets data keys from another program. samekey --keys-from runs a program that
// may use the keys, and writes a question for each data key to the program's standard input.
// The program calls [Serve] with a provider:
//
//	func main() {
//		if err := program.Serve(context.Background(), provider, os.Stdin, os.Stdout); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// kms/cmd/samekey-keys is such a program for AWS KMS. The program runs once for each call,
// with the rights of whoever calls it. Plain data keys go through a pipe between both, never
// through a file.
package program
