package target

import (
	"os"
	"os/exec"
	"path/filepath"
)

// One line per event on standard output; the harness redirects it to the server's log.
const logback = `<?xml version="1.0" encoding="UTF-8"?>
<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5level %logger [%thread] %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="OUT"/></root>
</configuration>
`

var officialClass = map[string]string{
	"namesrv": "org.apache.rocketmq.namesrv.NamesrvStartup",
	"broker":  "org.apache.rocketmq.broker.BrokerStartup",
}

// officialCommand is a JVM with flags of the case's own and the official start-up class. dir becomes ROCKETMQ_HOME
// (where it reads its logback configuration) and user.home (where it would keep its logs).
func officialCommand(kind Kind, role, dir string, jvm, args []string) (*exec.Cmd, error) {
	set := "server"
	if kind == Official5 {
		set = "server5"
	}
	js, err := jars(set)
	if err != nil {
		return nil, err
	}
	flags, err := jvmFlags()
	if err != nil {
		return nil, err
	}
	conf := filepath.Join(dir, "conf")
	if err := os.MkdirAll(conf, 0o755); err != nil {
		return nil, err
	}
	file := filepath.Join(conf, "logback_"+role+".xml")
	if err := os.WriteFile(file, []byte(logback), 0o644); err != nil {
		return nil, err
	}
	heap := "256m"
	if role == "broker" {
		heap = "768m"
	}
	java := append(flags, "-Xms64m", "-Xmx"+heap, "-XX:MaxDirectMemorySize=1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Duser.home="+dir, "-Djava.io.tmpdir="+dir, "-Drocketmq.broker.diskSpaceWarningLevelRatio=0.99",
		"-Drmq.logback.configurationFile="+file) // 5.x has its own logback, which looks nowhere else
	java = append(java, jvm...)
	java = append(java, "-cp", filepath.Join(js.lib, "*"), officialClass[role])
	return exec.Command("java", append(java, args...)...), nil
}
