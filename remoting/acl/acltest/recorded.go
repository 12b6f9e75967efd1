// Package acltest has the accounts that tests of access control share.
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
