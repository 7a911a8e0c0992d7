import t from 'tap'
import { areIndependent, exhaust } from '../../helpers/scheduler.ts'
import { openSecretRaces } from '../../helpers/secret-races.ts'

// A secret or a key is removed while requests use it. test/long/secrets.ts tries 10,000 orders.

t.test('no token of a removed secret or key survives, in any order', async (t) => {
  const { play, scheduler, close } = await openSecretRaces()
  t.teardown(close)
  scheduler.isShared = ({ collection }) => collection === 'clients' || collection === 'access_tokens'
  for (const which of ['named', 'first', 'key'] as const) {
    // Who comes in time is told a token, and who comes too late is refused.
    await exhaust({ least: 32, outcomes: ['a token', 'none'], commute: areIndependent }, async (choose) => {
      const { got, survivors, order } = await play(which, 1, undefined, choose)
      if (survivors > 0) t.fail(`a token of the credential '${which}' survived`, { order: order.split('\n') })
      return got > 0 ? 'a token' : 'none'
    })
  }
})

t.test('nor beside other changes', async (t) => {
  const { play, close } = await openSecretRaces()
  t.teardown(close)
  for (const other of ['adds another', 'renames the client', 'removes it too'] as const) {
    let run = 0
    await exhaust({ least: 16, most: 0, random: 20 }, async (choose) => {
      const { survivors, order } = await play((['named', 'key', 'first'] as const)[run++ % 3]!, 3, other, choose)
      if (survivors > 0) t.fail(`${other}: a token survived`, { order: order.split('\n') })
    })
  }
})
