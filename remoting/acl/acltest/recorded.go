// Package acltest has what tests of access control share: accounts and a log.
package acltest

// Recorded is the plain_acl.yml of the broker whose answers to clients with accounts were recorded.
const Recorded = `globalWhiteRemoteAddresses:
  - 10.99.99.*
accounts:
  - accessKey: oracleAdmin
    secretKey: "12345678"
    admin: true
  - accessKey: oracleUser
    secretKey: "87654321"
    admin: false
    defaultTopicPerm: PUB|SUB
    defaultGroupPerm: SUB
    topicPerms:
      - aclDenied=DENY
      - aclPubOnly=PUB
      - aclSubOnly=SUB
    groupPerms:
      - aclDeniedGroup=DENY
`
