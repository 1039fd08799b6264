package reports

import "runtime"

// CurrentEnvironment describes where this process runs, by what the build and getenv (os.Getenv or a stand-in) say.
func CurrentEnvironment(getenv func(string) string) *Environment {
	return &Environment{OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(), CI: ciName(getenv)}
}

// ciName recognises CI systems by the variables that they promise to set.
func ciName(getenv func(string) string) string {
	for _, ci := range []struct{ variable, name string }{
		{"GITHUB_ACTIONS", "GitHub Actions"}, {"GITLAB_CI", "GitLab CI"}, {"JENKINS_URL", "Jenkins"},
		{"TEAMCITY_VERSION", "TeamCity"}, {"CI", "CI"},
	} {
		if getenv(ci.variable) != "" {
			return ci.name
		}
	}
	return ""
}
