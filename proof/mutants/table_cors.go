package main

// corsMutants break who may read the engine's own answers.
func corsMutants() []mutant {
	return []mutant{
		{
			rule: "CORSListed", what: "any page may read the engine's answers, with its user's credentials",
			in: "idem.CORS.Allow", old: "if len($sent) != 1 || !slices.Contains($c.Origins, $sent[0]) {", new: "if len($sent) != 1 {", run: "^TestCORSAllow$",
		},
		{
			rule: "CORSWhole", what: "a page whose origin begins like a listed one may read the engine's answers",
			in: "idem.CORS.Allow", old: "!slices.Contains($c.Origins, $sent[0])",
			new: "!slices.ContainsFunc($c.Origins, func(o string) bool { return strings.HasPrefix($sent[0], o) })", run: "^TestCORSAllow$",
		},
		{
			rule: "CORSVary", what: "a cache may give one page's answer to another",
			in: "idem.CORS.Allow", old: "$h[varyHeader] = varies($h[varyHeader], originHeader)", new: "", run: "^TestCORSAllow$",
		},
		{
			rule: "CORSCredentials", what: "every page may read what was asked for with credentials",
			in: "idem.CORS.validate", old: "case $origin == anyOrigin && $c.Credentials:", new: "case false:", run: "^TestNewPanicsOnWhatCantWork$",
		},
	}
}
