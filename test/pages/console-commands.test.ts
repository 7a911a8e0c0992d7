import t from 'tap'
import { parseFlags } from '../../cli/args.ts'
import { COMMANDS } from '../../cli/main.ts'
import { startIdentity } from '../../testing/index.ts'
import '../helpers/plain-threads.ts'

/** The commands that a page names, as words. */
const readCommands = (page: string): string[][] => [...page.replaceAll(/<[^>]*>/g, '').replaceAll('&#39;', "'").matchAll(/^fastify-identity (.*)$/gm)]
  .map(([, line = '']) => line.replaceAll(/'([^']*)'/g, '$1').split(' '))

t.test('every command that a page names is one, with flags that it has', async (t) => {
  const kit = await startIdentity({ t, console: { path: '/admin' } })
  const boss = { account: 'boss', password: 'correct horse' }
  const { users, clients } = kit.app.identity
  const operator = { user_id: '', isAdmin: true }
  const { user_id } = await users.create({ data: boss })
  await users.patch(user_id, { data: { roles: { admin: true } } }, operator)
  const data = { name: 'Shop', redirectUris: ['https://shop.example/cb'], scopes: ['read'] }
  const { clientId } = await clients.create({ data, credentials: true }, { user_id, isAdmin: true })
  const { open } = await kit.console(boss)
  const client = `/clients/${clientId}`
  const paths = ['', '/find?q=boss', '/people', `/people/${user_id}`, '/clients', '/clients?kind=documents', client, `${client}/token?scope=read`, '/events', '/jobs', '/settings']
  for (const path of paths) {
    const found = readCommands(await open(path))
    t.ok(found.length > 0, `${path}: names commands`)
    for (const words of found) {
      const length = [3, 2, 1].find((count) => Object.hasOwn(COMMANDS, words.slice(0, count).join(' '))) ?? 0
      const command = COMMANDS[words.slice(0, length).join(' ')]
      t.ok(command, `${path}: ${words.join(' ')}`)
      t.doesNotThrow(() => parseFlags(command?.flags ?? {}, words.slice(length)), `${path}: ${words.join(' ')}`)
    }
  }
})
