import t from 'tap'
import { deliver } from './senders.ts'

t.test('several processes on one database send every mail once', async (t) => {
  const { mails, lost, duplicates } = await deliver(`sqlite:${t.testdir()}/mails.db`, { processes: 2, mails: 60, kills: 0 })
  t.strictSame({ mails, lost, duplicates }, { mails: 60, lost: 0, duplicates: 0 })
})

t.test('killed processes lose no mail, and duplicates have the same Message-ID', async (t) => {
  const { lost, duplicates, copies, ids, kills, inFlight } = await deliver(`sqlite:${t.testdir()}/mails.db`, { processes: 2, mails: 30, kills: 2 })
  t.equal(lost, 0)
  t.ok(duplicates <= inFlight && copies <= 2, `${duplicates} duplicates of ${inFlight} mails in flight after ${kills} kills`)
  t.equal(ids, 1)
})
