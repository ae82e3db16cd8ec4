package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// program uses each of the libraries that are released.
const program = `package main

import (
	"fmt"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/rationotel"
	"github.com/ration-go/ration/rationprom"
)

func main() {
	fmt.Println(ration.PerHour(5000), rationprom.New(rationprom.Options{}) != nil, rationotel.Options{})
}
`

// prove installs the version that a proxy's directory has, as a user would: the libraries into an empty
// module, whose program is run, and the commands. Modules that others wrote come from the cache of this
// machine, or by its own settings. Nothing is left in that cache: a version that is not published yet must not be there.
func prove(ctx context.Context, proxy, dir, version string) error {
	module := filepath.Join(dir, "empty")
	if err := os.MkdirAll(module, 0o755); err != nil {
		return err
	}
	settings, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return err
	}
	cache, others, _ := strings.Cut(strings.TrimSpace(string(settings)), "\n")
	env := append(os.Environ(), "GOWORK=off", "GOFLAGS=-modcacherw -buildvcs=false", "GOSUMDB=off", "GOTOOLCHAIN=local",
		"GOMODCACHE="+filepath.Join(dir, "cache"), "GOBIN="+filepath.Join(dir, "bin"),
		"GOPROXY=file://"+proxy+",file://"+filepath.Join(cache, "cache", "download")+","+others)
	run := func(name string, args ...string) error {
		c := exec.CommandContext(ctx, name, args...)
		c.Dir, c.Env = module, env
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
		}
		return nil
	}
	if err := run("go", "mod", "init", "example.com/empty"); err != nil {
		return err
	}
	for _, library := range []string{library, library + "/rationprom", library + "/rationotel"} {
		if err := run("go", "get", library+"@"+version); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(module, "main.go"), []byte(program), 0o644); err != nil {
		return err
	}
	if err := run("go", "mod", "tidy"); err != nil {
		return err
	}
	if err := run("go", "run", "."); err != nil {
		return err
	}
	for _, command := range []string{"ration", "crawler-demo"} {
		if err := run("go", "install", library+"/cmd/"+command+"@"+version); err != nil {
			return err
		}
		if err := run(filepath.Join(dir, "bin", command), "-h"); err != nil {
			return err
		}
	}
	return nil
}
