import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { parseEnv } from 'node:util'
import t from 'tap'
import { parseFlags } from '../cli/args.ts'
import { COMMANDS } from '../cli/main.ts'
import { readConfig } from '../config.ts'
import { isServiceLink } from '../lib/service-link.ts'
import { EnvironmentSchema } from '../schemas/config.ts'
import { listBlocks, readDoc } from './helpers/docs.ts'
import { startCommand } from './helpers/process.ts'

const ROOT = join(import.meta.dirname, '..')
const NAMES = Object.keys(EnvironmentSchema.properties)
const files = readdirSync(join(ROOT, 'deploy')).map((name) => `deploy/${name}`)
const text = (name: string) => readDoc(`deploy/${name}`)
/** The environment of a pod: that of the image, and the values of the ConfigMap that are no paths of secrets. */
function toPod (image: Record<string, string>): Record<string, string> {
  const [map = ''] = text('kubernetes.yaml').split(/^---$/m)
  const given = [...map.matchAll(/^ {2}([A-Z_]+): '?([^'\n]*)'?$/gm)].map(([, name = '', value = '']) => [name, value])
  const { DATABASE_URL_FILE: file, ...pod } = { ...image, ...Object.fromEntries(given) as Record<string, string> }
  if (file === undefined) throw new Error('the URL of the database is not in a file')
  return { ...pod, DATABASE_URL: 'mongodb://mongo/identity' }
}

const secretKey = Buffer.alloc(32, 1).toString('base64')

t.test('the files name variables that exist', async (t) => {
  for (const file of files) {
    const named = [...readDoc(file).matchAll(/\b(?:IDENTITY_[A-Z_]+|DATABASE_URL|LOG_LEVEL)\b/g)].map(([name]) => name)
    t.strictSame(named.filter((name) => !NAMES.includes(name) && !isServiceLink(name, '')), [], file)
  }
})

t.test('their configurations are accepted', async (t) => {
  const compose = Object.fromEntries([...text('compose.yaml').matchAll(/^ {6}([A-Z_]+): (.*)$/gm)].map(([, name = '', value = '']) => [name, value]))
  const image = Object.fromEntries([...text('Dockerfile').matchAll(/^(?:ENV| {3}) (\w+)=([^ \n]+)/gm)].map(([, name = '', value = '']) => [name, value]))
  t.match(image, { NODE_ENV: 'production', HOST: '0.0.0.0', DATABASE_URL: 'sqlite:/data/identity.db' })
  t.match(compose, { DATABASE_URL: /^mongodb:/ })
  const unit = parseEnv(text('identity.env')) as Record<string, string>
  t.match(unit, { DATABASE_URL: /^sqlite:\/var\/lib\/identity\// })
  for (const { IDENTITY_SECRET_KEY_FILE: _, ...env } of [
    unit, { ...image, ...compose } as Record<string, string>, toPod(image)
  ]) {
    const { warnings, services } = readConfig({ ...env, IDENTITY_SECRET_KEY: secretKey })
    t.strictSame(warnings, [])
    t.equal(services.production, true)
  }
})

t.test('no pod gets the variables of Services', async (t) => {
  for (const file of ['kubernetes.yaml', 'kubernetes-commands.yaml']) t.match(text(file), /^ +enableServiceLinks: false$/m, file)
})

t.test('their commands parse', async (t) => {
  const [, entry = '', given = ''] = /^ENTRYPOINT (\[.*\])\nCMD (\[.*\])$/m.exec(text('Dockerfile')) ?? []
  // The shell makes one argument of a substitution with spaces.
  const split = (line: string) => line.replace(/\$+\([^)]*\)/g, 'X').split(' ')
  const find = (from: string, pattern: RegExp) => [...from.matchAll(pattern)].map(([, line = '']) => split(line))
  const lines = [
    ...['identity.service', 'identity-backup.service'].flatMap((file) => find(text(file), /deploy\/identity (.*?)'?$/gm)),
    [...JSON.parse(entry) as string[], ...JSON.parse(given) as string[]].slice(3),
    ...find(text('compose.yaml'), /run --rm identity (.*)$/gm),
    ...find(text('kubernetes-commands.yaml'), /node dist\/cli\.js (.*)$/gm),
    ...listBlocks('docs/operations.md').flatMap((block) => find(block.text, /(?:deploy\/identity|dist\/cli\.js) (.*)$/gm))
  ]
  t.ok(lines.length >= 12, `${lines.length}`)
  for (const line of lines) {
    const length = [2, 1].find((count) => COMMANDS[line.slice(0, count).join(' ')] !== undefined) ?? 1
    const [name, flags] = [line.slice(0, length).join(' '), line.slice(length)]
    const command = COMMANDS[name]
    t.ok(command, line.join(' '))
    t.doesNotThrow(() => parseFlags(command!.flags, flags), line.join(' '))
  }
  for (const [, path = ''] of text('Dockerfile').matchAll(/^COPY (?!--from)(.*) \.\/?$/gm)) {
    for (const one of path.split(' ')) t.ok(existsSync(join(ROOT, one)), one)
  }
})

t.test('what is built is in the context of the image', async (t) => {
  const allowed = readDoc('.dockerignore').split('\n').filter((line) => line.startsWith('!')).map((line) => line.slice(1))
  const { include } = JSON.parse(readDoc('tsconfig.build.json')) as { include: string[] }
  t.strictSame(include.filter((path) => !allowed.includes(path) && !(path.endsWith('.ts') && allowed.includes('*.ts'))), [])
  for (const [, script = ''] of (JSON.parse(readDoc('package.json')) as { scripts: { build: string } }).scripts.build.matchAll(/node (\S+)/g)) t.ok(allowed.includes(script), script)
})

t.test('the supervisors wait until a shutdown is done', async (t) => {
  const { shutdownDelay, shutdownTimeout } = readConfig({ NODE_ENV: 'production', IDENTITY_SECRET_KEY: secretKey })
  // Five seconds for the store, and one for the workers.
  const needed = (shutdownDelay + shutdownTimeout) / 1000 + 6
  t.ok(Number(/^TimeoutStopSec=(\d+)$/m.exec(text('identity.service'))?.[1]) >= needed)
  t.ok(Number(/stop_grace_period: (\d+)s$/m.exec(text('compose.yaml'))?.[1]) >= needed)
})

t.test('the proxy is the one of operations.md', async (t) => {
  const [block] = listBlocks('docs/operations.md').filter(({ language }) => language === 'nginx')
  t.ok(text('nginx.conf').endsWith(block!.text))
})

function hasSystemd (): boolean {
  try {
    execFileSync('systemd-analyze', ['--version'], { stdio: 'ignore' })
    // The unit names it.
    return existsSync('/usr/bin/node')
  } catch {
    return false
  }
}

t.test('systemd accepts the units', { skip: !hasSystemd() && 'systemd-analyze or /usr/bin/node is not installed' }, async (t) => {
  // The units name the path of a checkout and a user, which this machine does not have.
  const dir = t.testdir()
  const units = files.filter((file) => /\.(service|timer)$/.test(file)).map((file) => {
    const copy = join(dir, basename(file))
    writeFileSync(copy, readDoc(file).replaceAll('/opt/fastify-identity', ROOT).replaceAll('User=identity', 'User=nobody'))
    return copy
  })
  t.equal(units.length, 3)
  t.doesNotThrow(() => execFileSync('systemd-analyze', ['verify', '--man=no', ...units], { stdio: 'pipe' }))
})

t.test('the alert rules and the dashboard name metrics of the page', async (t) => {
  const page = readDoc('docs/operations.md')
  const names = [...page.matchAll(/`((?:identity|http|nodejs|process)_[a-z0-9_]*)(\*?)`/g)]
  const isKnown = (name: string) => names.some(([, known = '', star]) => star === '*' ? name.startsWith(known) : name.replace(/_(bucket|count|sum)$/, '') === known)
  for (const file of ['alerts.yaml', 'dashboard.json']) {
    const used = [...text(file).matchAll(/\b(?:identity|http|nodejs|process)_[a-z0-9_]+(?=\{)/g)].map(([name]) => name)
    t.ok(used.length >= 10)
    t.strictSame(used.filter((name) => !isKnown(name)), [], file)
  }
  t.doesNotThrow(() => JSON.parse(text('dashboard.json')))
})

t.test('the script that runs commands', { skip: process.platform !== 'linux' && 'for Linux' }, async (t) => {
  const dir = t.testdir({ env: 'IDENTITY_NAME="Two words"\nPORT=0\n', 'old-node': '#!/bin/sh\n[ "$1" = --version ] && echo v20.1.0 && exit 0\nexit 1\n' })
  const file = join(dir, 'env')
  chmodSync(join(dir, 'old-node'), 0o700)
  const run = async (env: Record<string, string>, ...args: string[]) => {
    const started = startCommand(t, join(ROOT, 'deploy/identity'), { args, env: { ENV_FILE: file, NODE: process.execPath, ...env } })
    return { code: await started.ended, stderr: started.stderr(), stdout: started.stdout() }
  }
  const settings = { DATABASE_URL: `sqlite:${join(dir, 'identity.db')}`, IDENTITY_SECRET_KEY: secretKey }

  t.test('reads the environment file as a shell does', async (t) => {
    const { code, stdout, stderr } = await run({ ...settings, IDENTITY_CREATE_DATABASE: 'on' }, 'bootstrap', '--account', 'admin@example.com')
    t.equal(code, 0, stderr)
    t.match(stdout, /access_token/)
  })

  t.test('says what is missing', async (t) => {
    t.match(await run({ ENV_FILE: join(dir, 'none') }, 'serve'), { code: 1, stderr: /no environment file .*none/ })
    t.match(await run({ NODE: join(dir, 'old-node') }, 'serve'), { code: 1, stderr: /old-node is v20\.1\.0, and the service needs 24\.7 or later/ })
    t.match(await run({ NODE: '/none' }, 'serve'), { code: 1, stderr: /none is no Node/ })
  })

  t.test('called by root, runs as the owner of the environment file', { skip: process.getuid?.() !== 0 && 'needs root' }, async (t) => {
    // Where that owner may go: a checkout of the script alone, with a Node that says who runs it.
    const other = mkdtempSync(join(tmpdir(), 'identity-'))
    t.teardown(() => rmSync(other, { recursive: true }))
    chmodSync(other, 0o755)
    mkdirSync(join(other, 'deploy'))
    copyFileSync(join(ROOT, 'deploy/identity'), join(other, 'deploy/identity'))
    writeFileSync(join(other, 'env'), '')
    chownSync(join(other, 'env'), 65_534, 65_534)
    writeFileSync(join(other, 'node'), '#!/bin/sh\nid -u\nid -G\n', { mode: 0o755 })
    const started = startCommand(t, join(other, 'deploy/identity'), { args: ['serve'], env: { ENV_FILE: join(other, 'env'), NODE: join(other, 'node') } })
    t.equal(await started.ended, 0, started.stderr())
    t.strictSame(new Set(started.stdout().trim().split(/\s+/)), new Set(['65534']))
  })
})
