import { pathToFileURL } from 'node:url'
import t from 'tap'
import { isSuite, listPrograms, writeProgram } from './helpers/programs.ts'

const { MONGODB_URL } = process.env

/** What must hold at the end of the program that contains a text. */
const CHECKS: [text: string, check: string][] = [
  ['app.identity.protect(', `
    const mint = createMint(app.identity)
    const { headers } = await mint({ user: 'ann' })
    const orders = await mint({ user: 'ann', client: 'shop', resource, scopes: ['orders:read'] })
    const ask = async (url, headers) => (await app.inject({ url, headers })).json()
    assert.equal((await ask('/me', headers)).account, 'ann')
    assert.deepEqual(await ask('/orders', orders.headers), { orders: [], of: 'ann' })
    assert.equal((await ask('/orders', headers)).statusCode, 401)`],
  ['app.identity.bootstrap()', `
    const headers = { authorization: 'Bearer ' + access_token }
    assert.equal((await app.inject({ url: '/api/v1/user', headers })).json().data.account, 'ann')`],
  ["mint({ roles: ['admin'] })", 'assert.equal(response.statusCode, 200)']
]

const programs = listPrograms().filter((block) => !isSuite(block))

t.test('the programs on the pages run', async (t) => {
  t.ok(programs.length >= 7, `${programs.length} programs`)
  const home = process.cwd()
  t.teardown(() => process.chdir(home))
  for (const [index, block] of programs.entries()) {
    const skip = block.text.includes('MongoClient') && MONGODB_URL === undefined && 'MONGODB_URL is not set'
    await t.test(`${block.page}, program ${index}`, { skip }, async (t) => {
      const { dir, file } = writeProgram(t, block, CHECKS.filter(([part]) => block.text.includes(part)).map(([, check]) => check).join('\n'))
      process.chdir(dir)
      await t.resolves(import(pathToFileURL(file).href))
      process.chdir(home)
    })
  }
})
