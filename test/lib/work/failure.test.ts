import t from 'tap'
import { nameFailure } from '../../../lib/work/failure.ts'

t.test('a failure is named in codes only', async (t) => {
  t.equal(nameFailure(Object.assign(new Error('refused ann@example.com'), { code: 'EENVELOPE', responseCode: 550 })), 'EENVELOPE 550')
  t.equal(nameFailure(Object.assign(new Error('no'), { code: 'ECONNREFUSED' })), 'ECONNREFUSED')
  t.equal(nameFailure(Object.assign(new Error('no'), { code: 'ann@example.com' })), 'ERROR')
  const signal = AbortSignal.abort(new DOMException('too slow', 'TimeoutError'))
  t.equal(nameFailure(signal.reason), 'TIMEOUT', 'whatever the number of its code')
  t.equal(nameFailure(undefined), 'ERROR', 'a sender may reject with anything')
})
