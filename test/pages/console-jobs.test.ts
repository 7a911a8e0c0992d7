import t from 'tap'
import type { Job } from '../../schemas/support.ts'
import { createConsoleLook, renderConsole } from '../../lib/pages/console/index.ts'
import { jobsPage } from '../../lib/pages/console/jobs.ts'
import { createLook } from '../../lib/pages/look.ts'
import { JOB_KINDS } from '../../lib/work/jobs.ts'
import { eachStore } from '../oidc/harness.ts'
import { CONSOLE, HOSTILE, MARKUP, enterConsole, readEntries, send, withMails } from './console-visits.ts'

t.setTimeout(240_000)

const refused = (responseCode: number) => Object.assign(new Error('refused by mx.example'), { responseCode })

eachStore(t, 'the console shows what waits and what was given up, and sends it again', async (t, start) => {
  const answers = [refused(450), refused(550)]
  const harness = await start({ ...CONSOLE, ...await withMails(answers) })
  const { kit } = harness
  const { users, accounts, events } = kit.app.identity
  const admin = { user_id: 'boss', isAdmin: true }
  for (const name of ['one', 'two']) {
    await accounts.inviteUser({ account: `${name}@example.com` }, admin)
    await accounts.outbox?.settle()
  }
  t.ok(await users.getByAccount('one@example.com'))
  const tab = harness.browser()
  const page = await enterConsole(harness, '/admin/jobs', ['admin'], tab)
  t.equal(page.title, 'Jobs')
  t.match(page.text, '<h2 id="mail">Emails</h2>')
  t.strictSame(readEntries(page).map((entry) => entry.replace(/ [0-9a-f]{32}, /, ' ID, ').replace(/ Next.*/, '')), [
    'Waiting invite ID, 1 attempt', 'Failed invite ID, 1 attempt Last failure: 550'
  ])
  t.notMatch(page.text, /example\.com(?!["<])|mx\.example|token=|#[\w-]{43}/, 'no address, text or link')
  t.match(page.text, '/api/v1/jobs?limit=51')

  t.test('filters', async (t) => {
    t.match(readEntries(await tab.open('/admin/jobs?kind=mail&state=failed')), [/^Failed invite/])
    const none = await tab.open('/admin/jobs?kind=logout&state=failed')
    t.strictSame(readEntries(none), [])
    t.match(none.text, 'There are no jobs.')
    const wrong = await tab.open('/admin/jobs?kind=%3Cb%3Ebold')
    t.equal(wrong.response.status, 400)
    t.match(wrong.text, 'role="alert"')
    t.match(wrong.text, 'kind')
    t.notMatch(wrong.text, MARKUP)
  })

  t.test('one, then all of its kind', async (t) => {
    const [, id = ''] = /Failed invite ([0-9a-f]{32})/.exec(readEntries(page).join(' ')) ?? []
    answers.push(refused(550))
    const done = await send(page, '/admin/jobs', { action: 'retry', kind: 'mail', job: id })
    t.match(done.text, 'role="status">The jobs are due now.')
    await accounts.outbox?.settle()
    t.match(readEntries(await tab.open('/admin/jobs?state=failed')).length, 1, 'it has failed again')
    await send(done, '/admin/jobs', { action: 'retry', kind: 'mail' })
    await accounts.outbox?.settle()
    t.strictSame(readEntries(await tab.open('/admin/jobs')), [])
    await events.flush()
    const retried: object[] = []
    for await (const batch of events.list({ type: 'mail.retried', limit: 0 })) retried.push(...batch)
    t.match(retried, [{ actor: { via: 'console', user_id: page.user_id } }, { actor: { via: 'console' } }, { actor: { via: 'console' } }].slice(0, retried.length))
    t.ok(retried.length >= 2)
  })

  t.test('what is not there any more, or not done here, is told', async (t) => {
    const gone = await send(page, '/admin/jobs', { action: 'retry', kind: 'mail', job: 'none' })
    t.equal(gone.response.status, 404)
    t.match(gone.text, 'This wasn’t done: ')
    const wrong = await send(page, '/admin/jobs', { action: 'retry', kind: 'nothing' })
    t.equal(wrong.response.status, 400)
  })
})

eachStore(t, 'without email there are no jobs of its kind', async (t, start) => {
  const { browser } = await enterConsole(await start({ ...CONSOLE, mail: undefined }), '/admin/jobs', ['admin'])
  const page = await browser.open('/admin/jobs?kind=mail')
  t.equal(page.response.status, 404)
  t.match(page.text, 'kind: there is no mail, because it is not configured')
  t.match(page.text, '<option value="mail" selected>')
})

t.test('the list ends, says so, and shows whatever a job says as text', async (t) => {
  const look = createConsoleLook(createLook({}))
  const context = { language: 'en', zone: 'UTC', query: '' } as const
  const view = { base: '/admin', sections: [], maySearch: false, account: 'a', xsrf: '', isFresh: true, again: '', calls: [], api: '', commands: [] } as const
  const at = '2126-11-20T09:30:00.000Z'
  const create = (kind: Job['kind'], about: string, index = 0): Job =>
    ({ kind, job_id: `${about}${index}`, about, state: 'waiting', attempts: 2, failure: about, due_at: at, ends_at: kind === 'event' ? '' : at, stalled_since: at })
  const render = (jobs: Job[]) => renderConsole((context) =>
    jobsPage(view, { jobs, limit: 50, kinds: JOB_KINDS, kind: '', state: '', mayRetry: true }, context), look, context)
  const full = render(Array.from({ length: 51 }, (_none, index) => create('mail', 'forgot', index)))
  t.equal(full.match(/<li><div>/g)?.length, 50)
  t.match(full, 'There are more. This page shows the first 50 of each state.')
  t.match(full, 'no process of the service works on them')
  t.notMatch(render(Array.from({ length: 50 }, (_none, index) => create('mail', 'forgot', index))), 'There are more')
  for (const text of HOSTILE) {
    for (const kind of JOB_KINDS) t.notMatch(render([create(kind, text)]).replaceAll(/value="[^"]*"/g, ''), MARKUP, `${kind} ${text}`)
  }
})
