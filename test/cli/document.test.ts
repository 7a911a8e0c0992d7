import t from 'tap'
import { createCli } from '../helpers/cli.ts'

const AGENT = 'https://agent.example/client.json'

t.test('client document: an operator judges, blocks and lists clients that nobody has registered', async (t) => {
  // The name leads nowhere: no host is called.
  const cli = createCli(t.testdir(), { IDENTITY_DOCUMENT_HOSTS: 'agent.example, agent.invalid>cdn.example' })
  await cli('user create --account ann')
  t.match(await cli('client document test --url https://other.example/client.json'), { code: 1, stderr: /--url: host: the operator has not named the host of the client_id in oidc\.documents, or IDENTITY_DOCUMENT_HOSTS: other\.example/ })
  t.match(await cli('client document test --url https://agent.example/'), { code: 1, stderr: /--url: url: must have a path/ })
  t.match(await cli('client document test --url https://agent.invalid/client.json'), { code: 1, stderr: /--url: unreachable: the host of the document does not answer/ })
  t.match(await cli(`client document refresh --url ${AGENT}`), { code: 1, stderr: /--url: no such document/ })
  t.match(await cli(`client document block --url ${AGENT}`), { code: 0, stdout: /allows it again/ })
  t.match(await cli(`client document block --url ${AGENT}`), { code: 0 }, 'twice is once')
  const { data } = (await cli('client document list --json')).json() as unknown as { data: object[] }
  t.match(data, [{ url: AGENT, state: 'blocked', id: /^document:[\w-]{43}$/, name: '', used_at: undefined }])
  t.equal(data.length, 1)
  t.match(await cli(`client patch --client ${AGENT} --enable`), { code: 0 })
  t.match((await cli('client document list')).stdout, /agent\.example\/client\.json +allowed/)
  t.match(await cli(`client patch --client ${AGENT} --first-party`), { code: 1, stderr: /first.party: comes from the document/ })
  t.match(await cli(`client delete --client ${AGENT}`), { code: 0 })
})

t.test('client document: off, it says how to turn documents on', async (t) => {
  const cli = createCli(t.testdir())
  await cli('user create --account ann')
  for (const line of [`test --url ${AGENT}`, 'list', `block --url ${AGENT}`, `refresh --url ${AGENT}`]) t.match(await cli(`client document ${line}`), { code: /[12]/, stderr: /IDENTITY_DOCUMENT_HOSTS/ }, line)
})
