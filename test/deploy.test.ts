import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import t from 'tap'
import { parseFlags } from '../cli/args.ts'
import { COMMANDS } from '../cli/main.ts'
import { readConfig } from '../config.ts'
import { EnvironmentSchema } from '../schemas/config.ts'
import { listBlocks, readDoc } from './helpers/docs.ts'

const ROOT = join(import.meta.dirname, '..')
const NAMES = Object.keys(EnvironmentSchema.properties)
const files = readdirSync(join(ROOT, 'deploy')).map((name) => `deploy/${name}`)
const text = (name: string) => readDoc(`deploy/${name}`)
const secretKey = Buffer.alloc(32, 1).toString('base64')

t.test('the files name variables that exist', async (t) => {
  for (const file of files) {
    const named = [...readDoc(file).matchAll(/\b(?:IDENTITY_[A-Z_]+|DATABASE_URL|LOG_LEVEL)\b/g)].map(([name]) => name)
    t.strictSame(named.filter((name) => !NAMES.includes(name)), [], file)
  }
})

t.test('their configurations are accepted', async (t) => {
  const unit = Object.fromEntries([...text('identity.service').matchAll(/^Environment=(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]))
  const compose = Object.fromEntries([...text('compose.yaml').matchAll(/^ {6}([A-Z_]+): (.*)$/gm)].map(([, name = '', value = '']) => [name, value]))
  const image = Object.fromEntries([...text('Dockerfile').matchAll(/^(?:ENV| {3}) (\w+)=([^ \n]+)/gm)].map(([, name = '', value = '']) => [name, value]))
  t.match(image, { NODE_ENV: 'production', HOST: '0.0.0.0', DATABASE_URL: 'sqlite:/data/identity.db' })
  t.match(compose, { DATABASE_URL: /^mongodb:/ })
  t.match(unit, { DATABASE_URL: /^sqlite:\/var\/lib\/identity\// })
  for (const { IDENTITY_SECRET_KEY_FILE: _, ...env } of [
    { ...parseEnv(text('identity.env')) as Record<string, string>, ...unit } as Record<string, string>, { ...image, ...compose } as Record<string, string>
  ]) {
    const { warnings, services } = readConfig({ ...env, IDENTITY_SECRET_KEY: secretKey })
    t.strictSame(warnings, [])
    t.equal(services.production, true)
  }
})

t.test('their commands parse', async (t) => {
  const [, entry = '', given = ''] = /^ENTRYPOINT (\[.*\])\nCMD (\[.*\])$/m.exec(text('Dockerfile')) ?? []
  const lines = [
    ...[...text('identity.service').matchAll(/^Exec\w+=(.*)$/gm)].map(([, line = '']) => line.split(' ')),
    [...JSON.parse(entry) as string[], ...JSON.parse(given) as string[]],
    ...[...text('compose.yaml').matchAll(/run --rm identity (.*)$/gm)].map(([, line = '']) => ['dist/cli.js', ...line.split(' ')])
  ]
  t.ok(lines.length >= 3)
  for (const line of lines) {
    const [name = '', ...flags] = line.slice(line.indexOf('dist/cli.js') + 1)
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

t.test('systemd accepts the unit', { skip: !hasSystemd() && 'systemd-analyze or /usr/bin/node is not installed' }, async (t) => {
  t.doesNotThrow(() => execFileSync('systemd-analyze', ['verify', '--man=no', join(ROOT, 'deploy/identity.service')], { stdio: 'pipe' }))
})
