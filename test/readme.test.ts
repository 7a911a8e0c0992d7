import t from 'tap'
import { readDoc } from './helpers/docs.ts'

const readme = readDoc('README.md')

t.test('the README is an introduction of two screens', async (t) => {
  t.ok(readme.split('\n').length <= 125, `${readme.split('\n').length} lines`)
})

t.test('the questions of new readers are answered there, or one click away', async (t) => {
  t.match(readme, /curl -X POST \S+\/api\/v1\/user .*"password"/s, 'how do I make a user?')
  t.match(readme, /user create --account ann/)
  const pages: [path: string, heading: string, found: RegExp][] = [
    ['docs/operations.md', 'Back up and restore', /the database.*secret key/s],
    ['docs/operations.md', 'Run it in production', /IDENTITY_ISSUER.*bootstrap.*identity serve/s],
    ['docs/bridge.md', 'The bridge', /It is for an app/],
    ['docs/architecture.md', 'Where a change goes', /field of a user/]
  ]
  for (const [path, heading, found] of pages) {
    t.ok(readme.includes(`](${path}`), `${path} is linked`)
    const [, section = ''] = readDoc(path).split(new RegExp(`^#+ ${heading}$`, 'm'))
    t.match(section.split(/^# |^## /m)[0], found, heading)
  }
})
