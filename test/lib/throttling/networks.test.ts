import t from 'tap'
import { groupAddress, groupNetwork } from '../../../lib/throttling/networks.ts'

t.test('what counts as one address', async (t) => {
  for (const [ip, expected] of [
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::FFFF:cb00:7107', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:1:2::1', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['', '']
  ] as const) t.equal(groupAddress(ip), expected, ip)
})

t.test('what counts as one network', async (t) => {
  for (const [ip, expected] of [
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1::/48'],
    ['2001:db8::1', '2001:db8:0::/48'],
    ['', '']
  ] as const) t.equal(groupNetwork(ip), expected, ip)
})
