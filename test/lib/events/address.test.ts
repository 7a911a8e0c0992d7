import t from 'tap'
import { keepAddress } from '../../../lib/events/address.ts'

t.test('the network of an address, however the address is written', async (t) => {
  for (const [address, expected] of [
    ['192.0.2.1', '192.0.2.0/24'],
    ['::ffff:192.0.2.1', '192.0.2.0/24'],
    ['::ffff:c000:201', '192.0.2.0/24'],
    ['0:0:0:0:0:FFFF:192.0.2.1', '192.0.2.0/24'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1::/48'],
    ['2001:0DB8::1', '2001:db8:0::/48'],
    ['fe80::1%eth0', 'fe80:0:0::/48'],
    ['::1', '0:0:0::/48'],
    ['unknown', undefined],
    ['', undefined]
  ] as const) t.equal(keepAddress(address, 'net'), expected, address)
})

t.test('all of it, or nothing', async (t) => {
  t.equal(keepAddress('192.0.2.1', 'full'), '192.0.2.1')
  t.equal(keepAddress('192.0.2.1', 'off'), undefined)
})
