package admin

import (
	"strings"
	"testing"

	"rocketd/protocol"
	"rocketd/protocol/header"
)

// TestArguments: of each request the fields of its header are shown, and what its body says, but no secret, and not without
// end.
func TestArguments(t *testing.T) {
	long := strings.Repeat("ä", 1000)
	for name, tt := range map[string]struct {
		code   protocol.RequestCode
		header any
		fields [][2]string
		body   string
		want   string
	}{
		"topic": {protocol.DeleteTopicInBroker, &header.DeleteTopicRequest{}, [][2]string{{"topic", "T"}, {"AccessKey", "theAdmin"}, {"Signature", "sig="}, {"other", "x"}}, "", "topic=T"},
		"account": {protocol.UpdateAndCreateAclConfig, &header.CreateAccessConfigRequest{},
			[][2]string{{"accessKey", "newUser"}, {"secretKey", "verySecret"}, {"admin", "true"}}, "", "accessKey=newUser secretKey=****** admin=true"},
		"KV pair":        {protocol.PutKVConfig, &header.PutKVConfigRequest{}, [][2]string{{"namespace", "N"}, {"key", "k"}, {"value", "v"}}, "", "namespace=N key=k value=v"},
		"secret KV pair": {protocol.PutKVConfig, &header.PutKVConfigRequest{}, [][2]string{{"namespace", "N"}, {"key", "db.Password"}, {"value", "v"}}, "", "namespace=N key=db.Password value=******"},
		"configuration":  {protocol.UpdateBrokerConfig, &header.Empty{}, nil, "traceOn=true\ntls.server.keyPassword=abc\n", "traceOn=true tls.server.keyPassword=******"},
		"words for secrets": {protocol.UpdateBrokerConfig, &header.Empty{}, nil, "dbPwd=a\nAPIKEY=b\nx.passphrase=c\nmyPrivateKeyPem=d\nauthToken=e\nPASSWD=f\nkeepAlive=g\n",
			"dbPwd=****** APIKEY=****** x.passphrase=****** myPrivateKeyPem=****** authToken=****** PASSWD=****** keepAlive=g"},
		"no configuration": {protocol.UpdateNamesrvConfig, &header.Empty{}, nil, "secret=\\u12", "body=unreadable"},
		"group": {protocol.UpdateAndCreateSubscriptionGroup, &header.Empty{}, nil, `{"groupName":"G","secretKey":"abc"}`,
			`body={"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,"groupName":"G","notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}`},
		"no group": {protocol.UpdateAndCreateSubscriptionGroup, &header.Empty{}, nil, `{"secretKey":"abc`, "body=unreadable"},
		"long":     {protocol.DeleteTopicInBroker, &header.DeleteTopicRequest{}, [][2]string{{"topic", long}}, "", "topic=" + strings.Repeat("ä", 128) + "…"},
	} {
		cmd := protocol.NewRequest(tt.code, nil, []byte(tt.body))
		for _, f := range tt.fields {
			cmd.SetField(f[0], f[1])
		}
		a := argumentsOf(cmd, protocol.PlanFor(tt.header))
		if got := a.text.String(); got != tt.want {
			t.Errorf("%s: %s\nwant %s", name, got, tt.want)
		}
	}
	many := new(arguments)
	for range 1000 {
		many.add("key", long, false)
	}
	if n := many.text.Len(); n > maxArguments+2*maxValue {
		t.Errorf("%d bytes of arguments", n)
	}
}

func TestMask(t *testing.T) {
	a := new(arguments)
	a.add("secretKey", "shortSecret", true)
	a.add("accessKey", "theUser", false)
	if got := a.mask("The accessKey=theUser and secretKey=shortSecret cannot be"); got != "The accessKey=theUser and secretKey=****** cannot be" {
		t.Error(got)
	}
}
