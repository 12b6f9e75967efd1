package target

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The client generations that the Java cases are compiled against (conformance/java/pom.xml).
const (
	Client4 = "4.9.8"
	Client5 = "5.5.0"
)

// Client53 is the client of the official 5.3.3 server, for which the cases of Client5 need not be compiled again.
const Client53 = "5.3.3"

const installJava = "needs a JDK 11 or later and Maven: apt-get install openjdk-17-jdk-headless maven"

// The first Maven run fetches some 60 MB.
const mavenDeadline = 10 * time.Minute

func cacheDir() (string, error) {
	if dir := os.Getenv("CONFORMANCE_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w (set CONFORMANCE_CACHE)", err)
	}
	return filepath.Join(dir, "rocketd-conformance"), nil
}

// jvmFlags are what the RocketMQ classes need from the JDK at hand; an error when there is none that will do.
// The caller owns the slice.
func jvmFlags() ([]string, error) {
	flags, err := jdk()
	return append([]string(nil), flags...), err
}

var jdk = sync.OnceValues(func() ([]string, error) {
	text, err := exec.Command("java", "-version").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s (java -version: %w)", installJava, err)
	}
	m := regexp.MustCompile(`version "(\d+)`).FindSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("%s (java -version says %q)", installJava, text)
	}
	if v, _ := strconv.Atoi(string(m[1])); v < 11 {
		return nil, fmt.Errorf("%s (java -version says %q)", installJava, text)
	}
	flags := []string{"-XX:-UsePerfData", "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED", "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED"}
	for _, p := range []string{"java.nio", "java.lang", "java.net", "java.util", "sun.nio.ch", "jdk.internal.ref", "sun.security.jca"} {
		flags = append(flags, "--add-opens=java.base/"+p+"=ALL-UNNAMED")
	}
	return flags, nil
})

// jarSet is what a JVM's class path is made of.
type jarSet struct {
	lib     string // folder of jars
	classes string // folder of the compiled cases; "" for the servers
}

var jarSets sync.Map // set name → func() (jarSet, error)

// jars returns a set of jars, which Maven fetches and compiles when the pom or a source file has changed: "server"
// (4.9.7), "server5" (5.3.3), Client4 or Client5 (with the compiled cases); Client53 is made of two of these.
func jars(set string) (jarSet, error) {
	if set == Client53 {
		lib, err := jars("server5")
		if err != nil {
			return jarSet{}, err
		}
		cases, err := jars(Client5)
		return jarSet{lib: lib.lib, classes: cases.classes}, err
	}
	f, _ := jarSets.LoadOrStore(set, sync.OnceValues(func() (jarSet, error) { return fetch(set) }))
	return f.(func() (jarSet, error))()
}

// serverSet tells whether a set is that of official servers: jars alone, nothing to compile.
func serverSet(set string) bool { return set == "server" || set == "server5" }

// fetch fills <cache>/<set>/lib-<digest of the pom> and <cache>/<set>/build-<digest of pom and sources>. Nothing that is
// there is changed: another test process may be using it.
func fetch(set string) (jarSet, error) {
	dir, err := root()
	if err != nil {
		return jarSet{}, err
	}
	project := filepath.Join(dir, "conformance", "java")
	if serverSet(set) {
		project = filepath.Join(project, set)
	}
	pomDigest, err := digestOf(project, true)
	if err != nil {
		return jarSet{}, err
	}
	digest, err := digestOf(project, serverSet(set))
	if err != nil {
		return jarSet{}, err
	}
	cache, err := cacheDir()
	if err != nil {
		return jarSet{}, err
	}
	out := filepath.Join(cache, set)
	if err := os.MkdirAll(out, 0o755); err != nil {
		return jarSet{}, err
	}
	// One Maven at a time on a folder, also among test processes.
	lock, err := os.OpenFile(filepath.Join(cache, set+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return jarSet{}, err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return jarSet{}, err
	}
	base := []string{"-q", "-B", "-f", filepath.Join(project, "pom.xml")}
	if set == Client5 {
		base = append(base, "-P", "client5")
	}
	js := jarSet{lib: filepath.Join(out, "lib-"+pomDigest)}
	err = produce(js.lib, func(tmp string) error {
		return maven(append(base, "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+tmp))
	})
	if err != nil || serverSet(set) {
		return js, err
	}
	build := filepath.Join(out, "build-"+digest)
	js.classes = filepath.Join(build, "classes")
	return js, produce(build, func(tmp string) error { return maven(append(base, "-Dbuild.dir="+tmp, "compile")) })
}

// produce makes a folder that is not there yet, whole or not at all, and removes its predecessors that nobody has
// made within a day.
func produce(dir string, fill func(tmp string) error) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	kind, _, _ := strings.Cut(filepath.Base(dir), "-")
	old, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), kind+"-*"))
	for _, o := range old {
		if st, err := os.Stat(o); err == nil && time.Since(st.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(o)
		}
	}
	tmp := filepath.Join(filepath.Dir(dir), "tmp-"+kind)
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := fill(tmp); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}

func maven(args []string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return errors.New(installJava)
	}
	if _, err := exec.LookPath("javac"); err != nil {
		return errors.New(installJava)
	}
	ctx, cancel := context.WithTimeout(context.Background(), mavenDeadline)
	defer cancel()
	text, err := exec.CommandContext(ctx, mvn, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mvn %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return nil
}

// digestOf covers the pom and, unless pomOnly, every Java source of a Maven project.
func digestOf(project string, pomOnly bool) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(project, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(project, path)
		if rel != "pom.xml" && (pomOnly || filepath.Ext(path) != ".java") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %d\n", rel, len(text))
		h.Write(text)
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)[:8]), err
}

// Java is a command that runs a class of conformance/java or of the stock client and tools of that generation
// (Client4, Client5 or Client53). home becomes user.home and ROCKETMQ_HOME: offsets of broadcast consumers, logs. The
// process gets a group of its own and ends with ctx or the test process; start it with Run.
func Java(ctx context.Context, client, home string, jvm []string, class string, args ...string) (*exec.Cmd, error) {
	js, err := jars(client)
	if err != nil {
		return nil, err
	}
	flags, err := jvmFlags()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(home, "conf"), 0o755); err != nil {
		return nil, err
	}
	// The tools want a logback file, and print their whole log when it is missing.
	off := filepath.Join(home, "conf", "logback_tools.xml")
	if err := os.WriteFile(off, []byte("<configuration><root level=\"OFF\"/></configuration>\n"), 0o644); err != nil {
		return nil, err
	}
	all := append(flags, "-Xms32m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:MaxDirectMemorySize=512m",
		"-Duser.home="+home, "-Djava.io.tmpdir="+home, "-Drocketmq.home.dir="+home, "-Drocketmq.client.logUseSlf4j=false",
		"-Drocketmq.client.localOffsetStoreDir="+filepath.Join(home, "offsets"),
		"-Dlogback.configurationFile="+off, "-Drmq.logback.configurationFile="+off)
	all = append(all, jvm...)
	all = append(all, "-cp", js.classes+string(os.PathListSeparator)+filepath.Join(js.lib, "*"), class)
	cmd := exec.CommandContext(ctx, "java", append(all, args...)...)
	cmd.Dir = home
	cmd.Env = append(withoutEnv(os.Environ(), "NAMESRV_ADDR", "ROCKETMQ_HOME", "JAVA_TOOL_OPTIONS"), "ROCKETMQ_HOME="+home)
	cmd.SysProcAttr = processAttr()
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	return cmd, nil
}

// Run starts a command made by Java on the thread that outlives the test, and waits for its end.
func Run(cmd *exec.Cmd) error {
	if err := spawn(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}

// Mqadmin runs one subcommand of the stock mqadmin 4.9.8 against the target's name servers (-n is added) and
// returns its standard output. The tool exits with 0 whatever happens, so err is only about the JVM. It costs
// a JVM start of one to two seconds: for many subcommands see conformance/admin.
func (t *Target) Mqadmin(tb testing.TB, args ...string) (stdout string, err error) {
	tb.Helper()
	return t.MqadminWith(tb, nil, args...)
}

// MqadminWith is Mqadmin with flags for the JVM.
func (t *Target) MqadminWith(tb testing.TB, jvm []string, args ...string) (stdout string, err error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd, err := Java(ctx, Client4, filepath.Join(t.dir, "mqadmin"), jvm, "org.apache.rocketmq.tools.command.MQAdminStartup",
		append(args, "-n", t.Namesrv)...)
	if err != nil {
		tb.Fatalf("mqadmin: %v", err)
	}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := Run(cmd); err != nil {
		return out.String(), fmt.Errorf("mqadmin %s: %w\n%s", strings.Join(args, " "), err, errOut.String())
	}
	return out.String(), nil
}
