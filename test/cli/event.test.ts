import t, { type Test } from 'tap'
import { COMMANDS } from '../../cli/main.ts'
import type { EVENT_TYPES } from '../../lib/events/types.ts'
import type { Event } from '../../schemas/event.ts'
import { createTestKey } from '../helpers/assertions.ts'
import { createCli } from '../helpers/cli.ts'
import { serviceEnv, startProgram } from '../helpers/process.ts'

t.setTimeout(300_000)

/** The commands that change something in the store, in an order in which each can do its work, with the types of their events. */
const CHANGING: [line: string, ...types: (keyof typeof EVENT_TYPES)[]][] = [
  ['bootstrap --account boss', 'user.created', 'client.created'],
  ['user create --account ann@example.com', 'user.created'],
  ['user roles --account ann@example.com --add editor', 'user.roles_changed'],
  ['user password --account ann@example.com', 'user.password_changed'],
  ['user unlock --account ann@example.com', 'user.unlocked'],
  ['user verify-email --account ann@example.com', 'user.verified'],
  ['user disable --account ann@example.com', 'user.disabled'],
  ['user enable --account ann@example.com', 'user.enabled'],
  ['user invite --account guest@example.com', 'user.invited'],
  ['user delete --account guest@example.com', 'user.deleted'],
  ['user recover --account ann@example.com', 'user.recovery_started'],
  ['user data --account ann@example.com --out FILE', 'user.exported'],
  ['user export --out FILE', 'users.exported'],
  ['client create --owner ann@example.com --name new --redirect-uri https://app.example/ --credentials', 'client.created'],
  ['client patch --client CLIENT --name other', 'client.updated'],
  ['client secret add --client CLIENT --name other', 'client.secret_added'],
  ['client token create --client CLIENT --name other', 'token.service_created'],
  ['client secret remove --client CLIENT --secret first', 'client.secret_removed'],
  ['client key add --client CLIENT --file KEYS', 'client.keys_changed'],
  ['client key remove --client CLIENT --key k1', 'client.keys_changed'],
  ['client delete --client CLIENT', 'client.deleted'],
  ['client document block --url https://agent.example/client.json', 'client.updated'],
  ['resource create --id https://orders.example --name Orders --scope orders:read=read', 'resource.created'],
  ['resource remove --id https://orders.example', 'resource.deleted'],
  ['sessions end --user ann@example.com', 'user.sessions_ended'],
  ['user sessions end --account ann@example.com', 'user.sessions_ended'],
  ['keys rotate', 'key.rotated'],
  ['keys reseal', 'key.resealed']
]

/** Commands that change nothing that is recorded: they read, issue tokens, write files, or serve. */
const OTHERS = [
  'token create', 'token preview', 'find', 'user why', 'user list', 'user count', 'user show', 'user sessions', 'user mails', 'user factors list', 'user identities list', 'client list', 'client secret list', 'client token list', 'user token list', 'client key list', 'client export', 'resource list', 'event list',
  'event export', 'mail test', 'mail list', 'upstream test', 'logout list', 'work list', 'jobs list', 'keys status', 'backup', 'backup record', 'restore', 'compact', 'doctor',
  'config check', 'status', 'login', 'serve', 'testing', 'completion', 'texts export', 'client document test', 'client document list', 'client document refresh'
]

/** Commands about what no command makes, or with output of their own: test/cli/{people,logout,work,import,client-token,user-token}.test.ts, test/spec/{factors,identities}.test.ts. */
const LATER = ['client token remove', 'user token create', 'user token remove', 'token revoke', 'user import', 'mail retry', 'logout retry', 'work retry', 'jobs retry', 'user factors reset', 'user identities remove', 'user identities replace', 'user email release']

t.test('commands that change something have their events', async (t) => {
  const recorded = CHANGING.map(([line]) => line.split(' --')[0]!)
  const known = Object.keys(COMMANDS).filter((name) => !/^(webhook|move)/.test(name))
  t.same([...recorded, ...OTHERS, ...LATER].sort(), known.sort(), 'every command is known')
  const directory = t.testdir({ 'key.json': JSON.stringify(createTestKey('ES256', 'k1').jwk) })
  const cli = createCli(directory, { IDENTITY_ISSUER: 'http://127.0.0.1:3000', IDENTITY_DOCUMENT_HOSTS: 'agent.example' })
  let seen = 0
  let client = ''
  for (const [line, ...types] of CHANGING) {
    const ran = await cli(`${line.replace('CLIENT', client).replace('FILE', `${directory}/file`).replace('KEYS', `${directory}/key.json`)} --json`)
    t.equal(ran.code, 0, `${line}: ${ran.stderr}`)
    client = ran.json().clientId ?? client
    const events = ((await cli('event list --limit 0 --json')).json() as unknown as { data: Event[] }).data.toReversed().slice(seen)
    seen += events.length
    t.strictSame([...new Set(events.map(({ type }) => type))].sort(), [...types].sort(), line)
    t.ok(events.every(({ actor }) => actor.via === 'cli' && actor.user_id === undefined))
  }
})

t.test('event list and event export: tables, JSON lines, CSV, filters', async (t) => {
  const cli = createCli(t.testdir())
  await cli('user create --account ann')
  await cli('user create --account bob')
  await cli('user roles --account bob --add editor')
  const table = (await cli('event list --user bob')).stdout.trim().split('\n')
  t.match(table[0], /^TIME +TYPE +OUTCOME +ACCOUNT +REASON +ADDRESS +COUNT +TARGET +BY +CHANGED$/)
  t.match(table[1], /user\.roles_changed.* bob .*cli.*\+editor$/)
  t.equal((await cli('event list --reason wrong_password')).stdout, 'none\n')
  t.equal(table.length, 3)
  const lines = (await cli('event export --file -')).stdout.trim().split('\n').map((line) => JSON.parse(line) as Event)
  t.strictSame(lines.map(({ type }) => type), ['user.created', 'user.created', 'user.roles_changed'])
  t.equal((await cli('event export --file - --csv --type user.created')).stdout.trim().split('\n').length, 3)
  t.equal((await cli('event export --file - --csv --type user.*')).stdout.trim().split('\n').length, 4, 'a kind of types')
  t.match(await cli('event list --from yesterday'), { code: 1, stderr: /--from: / })
  t.match(await cli('event list --follow --from 2026-01-01T00:00:00Z'), { code: 2, stderr: /--follow: / })
  const stopping = new AbortController()
  const following = cli('event list --follow --type user.* --json', { signal: stopping.signal })
  await cli('user unlock --account bob')
  for (let number = 0; number < 4; number++) await cli('user unlock --account ann')
  stopping.abort()
  t.match((await following).stdout, /"type":"user.unlocked"/)
})

/** Starts `event list --follow` as a program of its own, and waits until it has printed an event. */
async function startFollowing (t: Test) {
  const dir = t.testdir()
  const cli = createCli(dir)
  await cli('user create --account ann')
  const command = startProgram(t, 'cli.ts', { args: ['event', 'list', '--follow'], env: serviceEnv(dir) })
  /** Causes events, and publishes them, until the promise is settled: before the command follows, they are nothing new to it. */
  async function causeEvents<T> (promise: Promise<T>): Promise<T> {
    const state = { isSettled: false }
    promise.finally(() => { state.isSettled = true }).catch(() => {})
    while (!state.isSettled) {
      await cli('user unlock --account ann')
      await cli('event list')
    }
    return await promise
  }
  await causeEvents(command.seen(/user\.unlocked/))
  return { command, causeEvents }
}

t.test('event list --follow ends when the program that reads its output ends', async (t) => {
  const { command, causeEvents } = await startFollowing(t)
  command.child.stdout?.destroy()
  t.type(await causeEvents(command.ended), 'number')
})

t.test('event list --follow ends with the exit code of the signal that has stopped it', async (t) => {
  const { command } = await startFollowing(t)
  command.child.kill('SIGINT')
  t.equal(await command.ended, 130)
  t.equal(command.stderr(), '')
})
