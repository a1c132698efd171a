// Package program gets data keys from another program, which has a provider. The option
// --keys-from of the command samekey names the other program. For each data key,
// samekey runs this program and writes a question to the program's standard input. To
// answer, the program calls [Serve] with the provider:
//
//	func main() {
//		if err := program.Serve(context.Background(), provider, os.Stdin, os.Stdout); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// kms/cmd/samekey-keys is such a program, for AWS KMS. The program runs with the rights of the user
// who runs samekey. Plain data keys go through a pipe between the two processes, never through a
// file.
package program
