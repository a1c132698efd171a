// Package program lets one program have the data keys of another: samekey
// --keys-from runs a program that has the permission on them, and asks it for each data
// key on its standard input. The program calls [Serve] with its provider:
//
//	func main() {
//		if err := program.Serve(context.Background(), provider, os.Stdin, os.Stdout); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// kms/cmd/samekey-keys is such a program for AWS KMS. The program runs once for each
// call, with the rights of whoever calls it. Plain data keys cross a pipe between
// both, and no file.
package program
