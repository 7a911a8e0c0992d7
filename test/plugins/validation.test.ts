import t from 'tap'
import { build } from '../helpers/build.ts'
import { signIn } from '../helpers/people.ts'

t.test('an unknown query parameter is refused by name, even if it is a property of every object', async (t) => {
  const kit = await build(t)
  const admin = await signIn(kit, { roles: ['admin'] })
  for (const name of ['colour', '__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    for (const path of ['/client/count', '/client/list', '/user/count', '/user/list']) {
      t.match(await admin.get(`${path}?${name}=1`), { status: 400, body: { code: 'ErrParam', message: `${name}: is not a known field` } }, `${path}?${name}`)
    }
  }
})
